// Command sessions measures the processor time of a run of vitrine reproduce sessions at N = 40, against the 0.62 s a
// session that the authors of MNL-VQL report (Lee and Oh 2025). With -tune it plays a grid of constants instead, on
// seeds from 1000; those in use are of 5000 sessions on 2 seeds.
//
//	go run ./bench/sessions [-sessions 30000]
//	go run ./bench/sessions -tune -sessions 5000 [-seeds 2]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"

	"vitrine/internal/cpu"
	"vitrine/mdp"
	"vitrine/paper/sessions"
)

// reported is the authors' time for a session, in seconds.
const reported = 0.62

func main() {
	tune := flag.Bool("tune", false, "play a grid of constants")
	n := flag.Int("sessions", 30_000, "sessions of a run")
	seeds := flag.Int("seeds", 2, "seeds of a grid point, from 1000")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	s := sessions.Default(nil)
	s.Sessions, s.Points = *n, 1
	if *tune {
		for i := range *seeds {
			s.Seeds = append(s.Seeds, 1000+uint64(i))
		}
		s.Items, s.Policies = []int{20}, grid()
	} else {
		s.Items, s.Seeds = []int{40}, []uint64{0}
	}
	if err := play(s, *tune); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play prints the mean return of every policy, or its time.
func play(s sessions.Study, tune bool) error {
	all := s.Policies
	for _, u := range s.Utilities {
		for _, p := range all {
			s.Utilities, s.Policies = []string{u}, []sessions.Policy{p}
			start := cpu.Time()
			r, err := s.Run(context.Background(), 1, func(int) {})
			if err != nil {
				return err
			}
			_, best, _ := r.Curve(u, s.Items[0], sessions.Optimum)
			_, mean, _ := r.Curve(u, s.Items[0], p.Label)
			took := (cpu.Time() - start).Seconds() / float64(len(s.Seeds))
			if tune {
				fmt.Printf("%-8s %-10s radius %-4v λ %-4v t_0 %-5v β_r %-5v: %.4f of the optimum\n", u, p.Label, p.Radius, p.Lambda, p.Warmup, p.Bonus, mean[0]/best[0])
			} else {
				fmt.Printf("%-8s %-10s: %.1f s a run, %.3f ms a session, 1/%.0f of the reported time\n", u, p.Label, took, 1e3*took/float64(s.Sessions), reported*float64(s.Sessions)/took)
			}
		}
	}
	return nil
}

// grid returns the settings that were tried.
func grid() (all []sessions.Policy) {
	for _, warmup := range []int{100, 500} {
		for _, bonus := range []float64{0.1, 0.3, 1} {
			o := mdp.Options{Warmup: warmup, Bonus: bonus}
			for _, radius := range []float64{0.3, 1} {
				all = append(all,
					sessions.Policy{Label: "vql", Learner: "ofu-mnl-plus", Radius: radius, Lambda: 10, Options: o},
					sessions.Policy{Label: "onl-vql", Learner: "onl-mnl", Radius: radius, Lambda: 1, Options: o})
			}
		}
		all = append(all, sessions.Policy{Label: "greedy-vql", Learner: "ofu-mnl-plus", Lambda: 10, Options: mdp.Options{Warmup: warmup}})
	}
	return all
}
