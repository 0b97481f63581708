package choice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Items are the distinct rows of the variables of the coefficients.
func TestItems(t *testing.T) {
	d := mustLoad(t, "table.csv", []byte("id,alt,y,x\n1,a,1,2\n1,b,0,1\n2,b,1,1\n2,a,0,2\n3,a,1,-3\n3,b,0,1\n"), `
[data]
form = "long"
choice = ["id"]
alternative = "alt"
chosen = "y"
[utility]
constants = true
generic = ["x"]
`)
	r := &Result{Spec: &Spec{Utility: Utility{Constants: true, Generic: []string{"x"}}}, Alternatives: d.Alternatives}
	items, err := r.Items(d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float64{{0, -3}, {0, 2}, {1, 1}}, items); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.Spec.Model.Kind = "mixed"
	if _, err := r.Items(d); err == nil {
		t.Error("items of a mixed logit")
	}
}
