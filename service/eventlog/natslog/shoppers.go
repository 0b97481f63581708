package natslog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"vitrine/service/shoppers"
)

// Shoppers returns the keys of shoppers, which are in a stream next to the log, one message for each. So all processes
// on the log share them, and a message can be deleted for good: entries cannot.
func (s *Store) Shoppers() shoppers.Store { return shopperKeys{s} }

// MakeKeys creates the empty stream of shoppers' keys, unless it exists.
func (s *Store) MakeKeys(ctx context.Context) error {
	_, err := shopperKeys{s}.open(ctx, true)
	return err
}

type shopperKeys struct{ *Store }

// freshKey is the age up to which a key is not swept: the decision that asked for it may not be in the state yet. A key
// that is asked for at half this age is written again.
var freshKey = 2 * shoppers.MaxFlight

func (k shopperKeys) subjectOf(id string) string {
	h := shoppers.HashOf(id)
	return k.options.Stream + ".shopper." + hex.EncodeToString(h[:])
}

// open returns the stream of the keys, which it creates if creates is set. Otherwise a stream that is missing is nil.
func (k shopperKeys) open(ctx context.Context, creates bool) (jetstream.Stream, error) {
	stream, made, err := k.find(ctx, creates)
	if made && k.options.MadeKeys != nil {
		k.options.MadeKeys()
	}
	return stream, err
}

// find does the work of open under the lock, and reports whether it created the stream.
func (k shopperKeys) find(ctx context.Context, creates bool) (stream jetstream.Stream, made bool, err error) {
	k.opening.Lock()
	defer k.opening.Unlock()
	if k.shoppers != nil {
		return k.shoppers, false, nil
	}
	name := k.options.Stream + "-shoppers"
	stream, err = ask(ctx, k.Store, func(ctx context.Context) (jetstream.Stream, error) {
		stream, err := k.js.Stream(ctx, name)
		if creates && errors.Is(err, jetstream.ErrStreamNotFound) {
			made = true
			stream, err = k.js.CreateStream(ctx, jetstream.StreamConfig{
				Name: name, Subjects: []string{k.options.Stream + ".shopper.*"}, Storage: jetstream.FileStorage,
				Replicas: k.replicas, // without a limit per subject: a server does not overwrite evicted messages
			})
		}
		return stream, err
	})
	if !creates && errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, false, nil
	}
	k.shoppers = stream
	return stream, made && err == nil, k.wrong(err)
}

func (k shopperKeys) wrong(err error) error {
	if err != nil {
		err = fmt.Errorf("natslog: the shoppers of %s: %w", k.where(), err)
	}
	return err
}

// last returns the message with a shopper's key, or nil.
func (k shopperKeys) last(ctx context.Context, stream jetstream.Stream,
	subject string) (*jetstream.RawStreamMsg, error) {
	m, err := askFor(ctx, k.Store, stream.GetLastMsgForSubject, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, nil
	case err == nil && len(m.Data) != len(shoppers.Key{}):
		err = fmt.Errorf("a key has %d bytes", len(m.Data))
	}
	return m, k.wrong(err)
}

// Key implements shoppers.Store.
func (k shopperKeys) Key(ctx context.Context, id, drawsFor string) (shoppers.Key, error) {
	draws := drawsFor != ""
	stream, err := k.open(ctx, draws)
	if stream == nil {
		return shoppers.Key{}, err
	}
	subject := k.subjectOf(id)
	for {
		m, err := k.last(ctx, stream, subject)
		switch {
		case err != nil || m == nil && !draws:
			return shoppers.Key{}, err
		case m != nil && (!draws || time.Since(m.Time) < freshKey/2):
			return shoppers.Key(m.Data), nil
		}
		key, before := shoppers.Draw(), uint64(0)
		if m != nil { // a sweep may be about to delete this message, and then does not find it
			key, before = shoppers.Key(m.Data), m.Sequence
		}
		_, err = ask(ctx, k.Store, func(ctx context.Context) (*jetstream.PubAck, error) {
			return k.js.Publish(ctx, subject, key[:], jetstream.WithExpectLastSequencePerSubject(before),
				jetstream.WithRetryAttempts(0))
		})
		if isWrongLast(err) {
			continue // another process was quicker, or the answer was lost
		}
		if err == nil && m != nil {
			_ = k.delete(ctx, stream, m.Sequence) // or Erase does it
		}
		return key, k.wrong(err)
	}
}

// Erase implements shoppers.Store. The server overwrites the key.
func (k shopperKeys) Erase(ctx context.Context, id string) error {
	stream, err := k.open(ctx, false)
	if stream == nil {
		return err
	}
	const attempts = 3 // if an answer is lost, the next attempt fails although the key is gone
	for attempt := 1; ; attempt++ {
		m, err := k.last(ctx, stream, k.subjectOf(id))
		if m == nil || err != nil {
			return err
		}
		if err := k.delete(ctx, stream, m.Sequence); err != nil && attempt == attempts {
			return err
		}
	}
}

func (k shopperKeys) delete(ctx context.Context, stream jetstream.Stream, sequence uint64) error {
	_, err := ask(ctx, k.Store, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, stream.SecureDeleteMsg(ctx, sequence)
	})
	return k.wrong(err)
}

// Sweep implements shoppers.Store.
func (k shopperKeys) Sweep(ctx context.Context, isUsed func(shoppers.Key) bool) error {
	stream, err := k.open(ctx, false)
	if stream == nil {
		return err
	}
	info, err := ask(ctx, k.Store, func(ctx context.Context) (*jetstream.StreamInfo, error) { return stream.Info(ctx) })
	if err != nil || info.State.Msgs == 0 {
		return k.wrong(err)
	}
	all, err := askFor(ctx, k.Store, stream.OrderedConsumer, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return k.wrong(err)
	}
	for {
		var list []jetstream.Msg
		_, err := ask(ctx, k.Store, func(context.Context) (struct{}, error) {
			batch, err := all.FetchNoWait(1000) // each call makes a consumer, which our server may not know yet
			if err != nil {
				return struct{}{}, err
			}
			for m := range batch.Messages() { // also those before an error, because the next call begins after them
				list = append(list, m)
			}
			return struct{}{}, batch.Error()
		})
		if err != nil || len(list) == 0 {
			return k.wrong(err)
		}
		for _, m := range list {
			about, err := m.Metadata()
			if err != nil || len(m.Data()) != len(shoppers.Key{}) || info.TimeStamp.Sub(about.Timestamp) < freshKey ||
				isUsed(shoppers.Key(m.Data())) {
				continue
			}
			if err := k.delete(ctx, stream, about.Sequence.Stream); err != nil &&
				!errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) { // it was erased meanwhile
				return err
			}
		}
	}
}
