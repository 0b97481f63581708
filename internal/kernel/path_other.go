//go:build !amd64

package kernel

// Without vector code the only path is the generic one. Kernels that return a number compute no entries, and the others
// are never called.

func best() path { return generic }

func expVector(_, _ []float64) int                             { return 0 }
func sigmoidVector(_, _ []float64) int                         { return 0 }
func tanhVector(_, _ []float64) int                            { return 0 }
func softplusVector(_, _ []float64) int                        { return 0 }
func sincosVector(_, _, _ []float64) int                       { return 0 }
func axpyVector(_ []float64, _ float64, _ []float64) int       { return 0 }
func mulComplementVector(_, _ []float64) int                   { return 0 }
func mulVector(_, _ []float64) int                             { return 0 }
func symRankOneVector(_ []float64, _ float64, _ []float64) int { return 0 }

func combineVector(_ []float64, _ float64, _ []float64, _ int, _ []float64, _ int) { panic(active) }
func dotVector(_, _ []float64) float64                                             { panic(active) }
func sumVector(_ []float64) float64                                                { panic(active) }
func gemvVector(_, _, _, _ []float64, _, _ int)                                    { panic(active) }
func gemvTransVector(_, _, _ []float64, _, _ int)                                  { panic(active) }

func symMulVecVector(_, _, _ []float64)              { panic(active) }
func symRankKVector(_, _, _ []float64, _, _ int)     { panic(active) }
func symQuadFormsVector(_, _, _ []float64, _, _ int) { panic(active) }

func bilinearVector(_ []float64, _ int, _ []float64, _ int, _ []float64, _ int, _ []float64, _, _ int) bool {
	return false
}
func addSquaresVector(_, _ []float64, _ int) bool                           { return false }
func columnsVector(_, _ []float64, _, _, _ int) bool                        { return false }
func mulPairsVector(_ []float64, _ int, _ []float64, _ int, _ []int32) bool { return false }
