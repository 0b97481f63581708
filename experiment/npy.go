package experiment

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// npz writes a NumPy archive: an uncompressed zip file with arrays in the format NPY 1.0, little-endian and in C order.
// The same arrays give the same bytes.
//
// Source: NEP 1, "A Simple File Format for NumPy Arrays".
type npz struct {
	buf bytes.Buffer
	zip *zip.Writer
}

func newNPZ() *npz {
	z := &npz{}
	z.zip = zip.NewWriter(&z.buf)
	return z
}

// floats adds a float64 array. It panics unless the shape has len(v) entries.
func (z *npz) floats(name string, v []float64, shape ...int) error {
	data := make([]byte, 0, 8*len(v))
	for _, x := range v {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
	}
	return z.array(name, "<f8", data, shape)
}

// integers adds an int64 array. It panics unless the shape has len(v) entries.
func (z *npz) integers(name string, v []int64, shape ...int) error {
	data := make([]byte, 0, 8*len(v))
	for _, x := range v {
		data = binary.LittleEndian.AppendUint64(data, uint64(x))
	}
	return z.array(name, "<i8", data, shape)
}

func (z *npz) array(name, dtype string, data []byte, shape []int) error {
	entries := 1
	dims := ""
	for _, n := range shape {
		entries *= n
		dims += fmt.Sprintf("%d,", n) // the comma makes (3,) a tuple
	}
	if 8*entries != len(data) {
		panic(fmt.Sprintf("experiment: array %s of shape %v has %d entries", name, shape, len(data)/8))
	}
	w, err := z.zip.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	if _, err := w.Write(npyHeader(dtype, dims)); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// npyHeader returns the header: magic bytes, version, the length of the rest, and a Python dictionary that
// ends in a newline. Spaces pad it, so that the data begins at a multiple of 64 bytes.
func npyHeader(dtype, dims string) []byte {
	const fixed = 10
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, dims)
	text += strings.Repeat(" ", 63-(fixed+len(text))%64) + "\n"
	header := []byte("\x93NUMPY\x01\x00")
	header = binary.LittleEndian.AppendUint16(header, uint16(len(text)))
	return append(header, text...)
}

// bytes finishes the archive and returns it.
func (z *npz) bytes() ([]byte, error) {
	err := z.zip.Close()
	return z.buf.Bytes(), err
}
