package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vitrine/service/shoppers"
)

// The contents of a data directory.
const (
	LogDir       = "log"            // the log
	SnapshotFile = "state.snapshot" // the last snapshot, with which a start begins
	alertsFile   = "alerts.json"    // the problems that the receiver of alerts knows
	lockFile     = "lock"           // with a log on NATS servers: held by the process that uses the directory
	shoppersFile = "shoppers"       // the keys of shoppers
	BasesDir     = "bases"          // snapshots that stand for removed entries
	baseSuffix   = ".snapshot"
)

// CheckShoppers returns an error if a data directory lacks keys of shoppers, of whom the placements remember some.
func CheckShoppers(data string, remembered int) error {
	return shoppers.Check(filepath.Join(data, shoppersFile), remembered)
}

// BeginShoppers makes all shoppers new to a copy of a log in a data directory, unless it holds keys.
func BeginShoppers(data string) error { return shoppers.Create(filepath.Join(data, shoppersFile)) }

func basePath(data string, upTo uint64) string {
	return filepath.Join(data, BasesDir, fmt.Sprint(upTo)+baseSuffix)
}

// basesIn returns the bases in a data directory, each by the number of its last entry, sorted.
func basesIn(data string) ([]uint64, error) {
	files, err := os.ReadDir(filepath.Join(data, BasesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var bases []uint64
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), baseSuffix)
		if upTo, err := strconv.ParseUint(name, 10, 64); ok && err == nil {
			bases = append(bases, upTo)
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// Snapshots returns the paths of the last snapshot and the bases in a data directory, the newest first.
func Snapshots(data string) ([]string, error) {
	var paths []string
	if path := filepath.Join(data, SnapshotFile); isFile(path) {
		paths = append(paths, path)
	}
	bases, err := basesIn(data)
	slices.SortFunc(bases, func(a, b uint64) int { return cmp.Compare(b, a) })
	for _, upTo := range bases {
		paths = append(paths, basePath(data, upTo))
	}
	return paths, err
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
