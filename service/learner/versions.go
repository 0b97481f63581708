package learner

// Keep keeps the state as a version.
func (l *Learner) Keep(version uint64) { l.push(task{what: toKeep, version: version}) }

// Forget drops a version.
func (l *Learner) Forget(version uint64) { l.push(task{what: toForget, version: version}) }

// ReturnTo returns to a version's rounds, as of an entry. A retired or broken learner learns again. Sales that wait are
// forgotten, as the rounds learned since the version.
func (l *Learner) ReturnTo(entry, version uint64) {
	l.holding(func() { l.ordering.drop() })
	l.push(task{what: toReturn, entry: entry, version: version})
}

// Retire drops the learner, and leaves the versions.
func (l *Learner) Retire() {
	l.holding(func() { l.ordering.drop() })
	l.push(task{what: toRetire})
}

func (l *Learner) retire() {
	l.progress.Retired, l.progress.Broken, l.marked = true, false, true
	l.learner, l.checkpoint = nil, nil
	l.current.Store(&Published{Entry: l.progress.Entry})
}

func (l *Learner) returnTo(entry, version uint64) {
	l.progress.Retired, l.progress.Entry = false, entry
	if k := find(l.kept, version); k != nil {
		s, err := l.restored(k.data)
		if err == nil {
			l.learner, l.progress.Broken = s, false
			err = l.mark()
		}
		if err != nil {
			l.fail(err)
		}
		l.progress.Learned = k.learned
	}
	if l.learner == nil { // the state cannot be read
		l.showState(entry)
	}
}

// Show makes a retired learner publish a version's policy, so that it can decide at once. The channel is closed once it
// does, or when the learner ends.
func (l *Learner) Show(version uint64) <-chan struct{} {
	return l.call(func() {
		if k := find(l.kept, version); k != nil && l.progress.Retired {
			l.showState(version, k.data)
		}
		if l.current.Load().Policy == nil {
			l.showState(l.progress.Entry)
		}
	})
}

// showState publishes the policy of a saved state, or of a fresh learner.
func (l *Learner) showState(entry uint64, saved ...[]byte) {
	if pi, err := policyOf(l.restored(saved...)); err == nil {
		l.current.Store(&Published{pi, entry})
	}
}

// Learned returns how many rounds a version learned; ok is false before the version is kept.
func (l *Learner) Learned(version uint64) (rounds uint64, ok bool) {
	k, ok := l.keeps(version)
	return k.learned, ok
}

// PolicyOf returns the policy of an entry or version if the learner still holds it, otherwise the current one.
func (l *Learner) PolicyOf(version uint64) Published {
	current := l.current.Load()
	if current.Entry == version {
		return *current
	}
	if s := l.substitute.Load(); s != nil && s.Entry == version {
		return *s
	}
	if k, ok := l.keeps(version); ok {
		if pi, err := policyOf(l.restored(k.data)); err == nil {
			return Published{pi, version}
		}
	}
	return *current
}

// Substitute returns the policy that decides while the guard distrusts the current one, or nil.
func (l *Learner) Substitute() *Published { return l.substitute.Load() }

// SetSubstitute makes the policy of a version the substitute once the goroutine comes to it.
func (l *Learner) SetSubstitute(version uint64) {
	l.call(func() {
		if k := find(l.kept, version); k != nil {
			if pi, err := policyOf(l.restored(k.data)); err == nil {
				l.substitute.Store(&Published{pi, version})
			}
		}
	})
}

// ClearSubstitute ends the substitute.
func (l *Learner) ClearSubstitute() { l.substitute.Store(nil) }
