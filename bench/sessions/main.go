// Command sessions measures the processor time of a run of vitrine reproduce sessions at N = 40, against the 0.62 s a
// session that the authors of MNL-VQL report (Lee and Oh 2025), or of a run of vitrine reproduce rivers. With -tune it
// plays a grid of constants instead, on seeds from 1000. Those in use are of 5000 sessions on 2 seeds in shops with N =
// 20, and of 500 sessions on 5 seeds in rivers.
//
//	go run ./bench/sessions [-rivers] [-sessions 30000]
//	go run ./bench/sessions [-rivers] -tune -sessions 5000 [-seeds 2]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"

	"vitrine/internal/cpu"
	"vitrine/mdp"
	"vitrine/paper/sessions"
)

// reported is the authors' time for a session in a shop, in seconds.
const reported = 0.62

func main() {
	rivers := flag.Bool("rivers", false, "play rivers in place of shops")
	tune := flag.Bool("tune", false, "play a grid of constants")
	n := flag.Int("sessions", 30_000, "sessions of a run")
	seeds := flag.Int("seeds", 2, "seeds of a grid point, from 1000")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	s, grid, size := sessions.Default([]uint64{0}), shopGrid, 40
	if *rivers {
		s, grid = sessions.Rivers([]uint64{0}), riverGrid
	}
	if *tune {
		s.Policies, s.Seeds, size = grid(), nil, 20
		for i := range *seeds {
			s.Seeds = append(s.Seeds, 1000+uint64(i))
		}
	}
	worlds := slices.Concat(s.Worlds...)
	if !*rivers {
		worlds = []sessions.World{{Kind: sessions.Linear, Size: size}, {Kind: sessions.Network, Size: size}}
	}
	s.Sessions, s.Points = *n, 1
	if err := play(s, worlds, *tune); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play prints the mean return of every policy in every world, or its time.
func play(s sessions.Study, worlds []sessions.World, tune bool) error {
	for _, p := range s.Policies {
		total := 0.0
		for _, w := range worlds {
			s.Worlds, s.Policies = [][]sessions.World{{w}}, []sessions.Policy{p}
			start := cpu.Time()
			r, err := s.Run(context.Background(), 1, func(int) {})
			if err != nil {
				return err
			}
			_, mean, _ := r.Curve(w, p.Label)
			total += mean[0]
			took := (cpu.Time() - start).Seconds() / float64(len(s.Seeds))
			if tune {
				report(w.String(), p, mean[0])
			} else {
				fmt.Printf("%-28s %-14s: %.1f s a run, %.3f ms a session, in a shop 1/%.0f of the reported time\n", w,
					p.Label, took, 1e3*took/float64(s.Sessions), reported*float64(s.Sessions)/took)
			}
		}
		if tune {
			report("all worlds", p, total/float64(len(worlds)))
		}
	}
	return nil
}

func report(world string, p sessions.Policy, share float64) {
	fmt.Printf("%-28s %-14s radius %-4v λ %-4v t_0 %-5v bonus %-5v: %.4f of the optimum\n", world, p.Label, p.Radius,
		p.Lambda, p.Warmup, p.Bonus, share)
}

// shopGrid returns the settings that were tried in shops.
func shopGrid() (all []sessions.Policy) {
	for _, warmup := range []int{100, 500} {
		for _, bonus := range []float64{0.1, 0.3, 1} {
			o := mdp.Options{Warmup: warmup, Bonus: bonus}
			for _, radius := range []float64{0.3, 1} {
				all = append(all,
					sessions.Policy{Label: "vql", Learner: "ofu-mnl-plus", Radius: radius, Lambda: 10, Options: o},
					sessions.Policy{Label: "onl-vql", Learner: "onl-mnl", Radius: radius, Lambda: 1, Options: o})
			}
		}
		all = append(all, sessions.Policy{Label: "greedy-vql", Learner: "ofu-mnl-plus", Lambda: 10,
			Options: mdp.Options{Warmup: warmup}})
	}
	return all
}

// riverGrid returns the settings that were tried in rivers.
func riverGrid() (all []sessions.Policy) {
	for _, p := range sessions.Rivers(nil).Policies {
		warmups, bonuses := []int{0}, []float64{0.003, 0.01, 0.03}
		if p.Warmup > 0 {
			warmups = []int{5, 20, 50}
		}
		if p.Bonus == 0 {
			bonuses = []float64{0}
		}
		for _, p.Warmup = range warmups {
			for _, p.Bonus = range bonuses {
				for _, p.Lambda = range []float64{1, 10} {
					all = append(all, p)
				}
			}
		}
	}
	return all
}
