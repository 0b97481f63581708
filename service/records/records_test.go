package records_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/service/decision"
	"vitrine/service/records"
	"vitrine/service/setup"
)

// A file in another encoding than UTF-8 is refused, with the line and the column: its categories would be others than those
// of requests.
func TestFileThatIsNotUTF8(t *testing.T) {
	c, err := setup.Parse([]byte(placement))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log.csv")
	if err := os.WriteFile(path, []byte("decision_id,item,chosen,brand\na,x,1,acme\na,y,0,caf\xe9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = records.Read(t.Context(), path, &records.Mapping{}, c, func(*decision.Imported) error { return nil })
	if err == nil || !strings.HasSuffix(err.Error(), `item "y": column brand: "caf\xe9" is not UTF-8: convert the file`) {
		t.Errorf("%v", err)
	}
}
