package table

// SetMaxWhole sets the limit on compressed Parquet, in bytes, and returns the old limit.
func SetMaxWhole(n int64) (was int64) {
	was, maxWhole = maxWhole, n
	return was
}
