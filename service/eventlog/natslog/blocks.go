package natslog

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"

	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

// When the server opens damaged files it cuts them at the damage: a flipped bit can remove up to 8 MB of
// sound entries. Therefore every record of every file, a block, is verified before the server starts. A
// record of its version 2:
//
//	length    4 bytes   of the whole record; the highest bit says that it has headers
//	sequence  8 bytes   of the message; the two highest bits say that it stands for a removed one
//	time      8 bytes
//	subject   2 bytes   its length
//	          the subject, with headers a length of 4 bytes and they, and the message
//	hash      8 bytes   HighwayHash of all but the lengths, under the key SHA-256("stream-block")
//
// Integers are little endian. A message is a frame, which is also decoded and has its own checksum.
const (
	recordHead   = 22
	recordSum    = highwayhash.Size64
	headersFlag  = 1 << 31
	removedFlags = 1<<63 | 1<<62
	maxRecord    = 32 << 20
)

// asideName is the directory that keeps damaged blocks as they were found.
const asideName = "damaged"

// scan is the state of reading a log's blocks.
type scan struct {
	stream  string
	message uint64          // the last one; 0 before the first
	before  *eventlog.Frame // an empty one where the last one ends; nil before the first
	buffer  []byte
}

// flaw is the place of the damage in a block.
type flaw struct {
	path     string
	at, size int64 // of the first record that is not sound, of the block
	rest     []string
	err      error
}

func (f *flaw) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d of %d: %v", f.path, f.at, f.size, f.err)
}

// verifyBlocks reads the blocks of the directory. A record half written by a killed process at the end was
// never acknowledged; the server removes it. Other damage is a *eventlog.DamageError, unless the directory
// has no mark: then the operator has accepted the loss, and the log ends before the damage. The damaged
// blocks are kept in a separate directory.
func (s *Store) verifyBlocks() error {
	dir := s.options.Dir
	k := scan{stream: s.options.Stream}
	bad, err := k.blocks(filepath.Join(dir, "jetstream", server.DEFAULT_GLOBAL_ACCOUNT, "streams", s.options.Stream, "msgs"))
	if err != nil || bad == nil {
		return err
	}
	next := max(s.mark.first, s.options.First)
	if k.before != nil {
		next = k.before.First
	}
	isTail := !slices.ContainsFunc(bad.rest, func(path string) bool { info, err := os.Stat(path); return err != nil || info.Size() > 0 })
	switch guarded := s.mark.next > 0; {
	case guarded && isTail && next >= s.mark.next:
		s.options.Logger.Warn("the log's last bytes are of no acknowledged entry, and are removed", "file", bad.path, "from", bad.at, "bytes", bad.size-bad.at, "cause", bad.err.Error())
	case guarded:
		return &eventlog.DamageError{Sequence: next, Err: fmt.Errorf("%w: %s", bad, s.mark.advice())}
	default:
		s.options.Logger.Warn("the log is damaged, and nothing says what it must have: it ends before the damage", "next", next, "kept", filepath.Join(dir, asideName), "cause", bad.Error())
	}
	return bad.cut(filepath.Join(dir, asideName))
}

// cut ends the log before the flaw. The block and those after it are kept in a directory.
func (f *flaw) cut(aside string) error {
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	if err := replace.Private(filepath.Join(aside, filepath.Base(f.path)), data); err != nil {
		return err
	}
	for _, path := range slices.Backward(f.rest) {
		if err := os.Rename(path, filepath.Join(aside, filepath.Base(path))); err != nil {
			return err
		}
	}
	if err := replace.Sync(aside); err != nil {
		return err
	}
	return os.Truncate(f.path, f.at)
}

// blocks reads the blocks of a directory, up to the first flaw.
func (k *scan) blocks(dir string) (*flaw, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.blk"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(block(a), block(b)) })
	for i, path := range paths {
		bad, err := k.block(path)
		if err != nil {
			return nil, err
		}
		if bad != nil {
			bad.rest = paths[i+1:]
			return bad, nil
		}
	}
	return nil, nil
}

func (k *scan) block(path string) (*flaw, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	buffer := bytes.NewBuffer(k.buffer[:0])
	if _, err := io.Copy(buffer, file); err != nil {
		return nil, err
	}
	k.buffer = buffer.Bytes()
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", k.stream, block(path)))
	hash, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(k.buffer); {
		size, err := k.record(k.buffer[at:], hash)
		if err != nil {
			return &flaw{path: path, at: int64(at), size: int64(len(k.buffer)), err: err}, nil
		}
		at += size
	}
	return nil, nil
}

// record reads the record at the beginning of data.
func (k *scan) record(data []byte, hash *highwayhash.Digest64) (size int, err error) {
	if len(data) < recordHead+recordSum {
		return 0, fmt.Errorf("the last %d bytes are no record", len(data))
	}
	length := binary.LittleEndian.Uint32(data)
	size = int(length &^ headersFlag)
	text := recordHead + int(binary.LittleEndian.Uint16(data[20:])) // where the headers or the message begin
	if length&headersFlag != 0 {
		text += 4
	}
	if size > min(len(data), maxRecord) || text+recordSum > size {
		return 0, fmt.Errorf("a record has %d bytes of %d", size, len(data))
	}
	hashed, sum := data[text:size-recordSum], data[size-recordSum:size]
	hash.Reset()
	hash.Write(data[4:20])
	hash.Write(data[recordHead : recordHead+int(binary.LittleEndian.Uint16(data[20:]))])
	hash.Write(hashed)
	var have [recordSum]byte
	if !bytes.Equal(hash.Sum(have[:0]), sum) {
		return 0, errors.New("the hash of a record is not that of its bytes")
	}
	message := binary.LittleEndian.Uint64(data[4:])
	if message == 0 || message&removedFlags != 0 {
		return size, nil
	}
	if length&headersFlag != 0 {
		headers := uint64(binary.LittleEndian.Uint32(data[text-4:]))
		if headers > uint64(len(hashed)) {
			return 0, fmt.Errorf("message %d has headers of %d bytes", message, headers)
		}
		hashed = hashed[headers:]
	}
	if k.message > 0 && message != k.message+1 {
		return 0, fmt.Errorf("message %d comes after message %d", message, k.message)
	}
	k.message = message
	if isClaim(hashed) {
		return size, nil
	}
	f, err := decodeAfter(k.before, hashed) // its running hash is checked when the entries are read
	if err != nil {
		return 0, fmt.Errorf("message %d: %w", message, err)
	}
	k.before = &eventlog.Frame{Epoch: f.Epoch, First: f.Next(), Log: f.Log}
	return size, nil
}

// hasBlocks reports whether a directory has a log's blocks.
func hasBlocks(dir, stream string) bool {
	paths, err := fs.Glob(os.DirFS(dir), filepath.ToSlash(filepath.Join("jetstream", "*", "streams", stream, "msgs", "*.blk")))
	return err == nil && len(paths) > 0
}
