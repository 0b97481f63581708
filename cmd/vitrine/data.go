package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vitrine/config"
	"vitrine/env"
	"vitrine/internal/hint"
)

// dataFlags are common to the commands that play experiments with real items.
type dataFlags struct {
	Data  string `help:"The data of experiments with real items: a file, or a folder with a folder for each pool (imdb, camera, modecanada, heating, fishing, choices)." placeholder:"PATH"`
	Cache string `help:"Folder for what was computed from the data (default: vitrine in the user's cache)." placeholder:"DIR"`
}

// data reads and keeps pools: each is read once.
type data struct {
	dataFlags
	ctx   context.Context
	t     terminal
	pools map[string]*env.Pool
}

func (f dataFlags) open(ctx context.Context, t terminal) data {
	return data{dataFlags: f, ctx: ctx, t: t, pools: map[string]*env.Pool{}}
}

// has reports whether --data is a folder with a subfolder for the pool. Experiments that are not named one by one need
// it. "" needs no pool.
func (f dataFlags) has(pool string) bool {
	return pool == "" || f.Data != "" && isDir(filepath.Join(f.Data, pool))
}

// supply gives each file the pool that it names.
func (d data) supply(files ...*config.File) error {
	for _, f := range files {
		if err := d.supplyOne(f); err != nil {
			return err
		}
	}
	return nil
}

func (d data) supplyOne(f *config.File) error {
	if f.Pool == "" {
		return nil
	}
	advice := "the data is " + config.PoolSource(f.Pool)
	if d.Data == "" {
		return hint.New(usagef("%s needs real data: name its file or folder with --data PATH", f.Name), advice)
	}
	p, ok := d.pools[f.Pool]
	if !ok {
		var err error
		switch p, err = d.load(f.Pool); {
		case errors.Is(err, context.Canceled):
			return fmt.Errorf("%s: interrupted while its data was read", f.Name)
		case errors.Is(err, fs.ErrPermission):
			return hint.New(err, "choose data that you may read with --data")
		case errors.Is(err, fs.ErrNotExist):
			return hint.New(err, advice)
		case err != nil:
			return err
		}
		d.pools[f.Pool] = p
	}
	return f.UsePool(p)
}

// load reads a pool from --data, or from the folder of its name in it.
func (d data) load(pool string) (*env.Pool, error) {
	path := d.Data
	if inside := filepath.Join(path, pool); isDir(inside) {
		path = inside
	}
	cache := d.Cache
	if cache == "" {
		if own, err := os.UserCacheDir(); err == nil {
			cache = filepath.Join(own, "vitrine")
		}
	}
	work := stages{w: d.t.err, name: pool}
	defer work.close()
	return config.LoadPool(d.ctx, pool, path, config.Loading{
		Cache:    cache,
		Progress: work.report,
		Warn: func(err error) {
			work.close()
			d.t.warn(err.Error())
		},
		Note: func(text string) {
			work.close()
			fmt.Fprintf(d.t.err, "vitrine: %s: %s\n", pool, text)
		},
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
