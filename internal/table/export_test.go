package table

// SetMaxWhole sets how many bytes of compressed Parquet are read, and returns how many it was.
func SetMaxWhole(n int64) (was int64) {
	was, maxWhole = maxWhole, n
	return was
}
