// Package catalogue keeps a placement's items, so that requests can name them by id.
//
//	item.go       the fields of an item, its space, and patches
//	record.go     an item in bytes, for the log and snapshots
//	kept.go       an item in bytes, for memory
//	pages.go      many short texts
//	catalogue.go  the items, their rows, and changes, also those that are made before the writer runs
//	freeze.go     the items at one version while the catalogue changes
//	select.go     the items that a request may be offered
//	filter.go     conditions on items
//	groups.go     items by category, attribute, group or space
//	sweep.go      keeps filters and groups up to date, in slices
//	work.go       limits the filters of one caller
package catalogue
