// Package catalogue keeps the items of a placement, so that requests name them by id.
//
//	item.go       what an item may have, and how a patch changes it
//	record.go     an item in bytes, as the log and snapshots have it
//	kept.go       an item in bytes, as memory has it
//	pages.go      many short texts
//	catalogue.go  the items, their rows and how they change
//	freeze.go     the items of a version, while the catalogue changes
//	select.go     which of them a request may be offered
//	filter.go     conditions on items
//	groups.go     items by a category, an attribute, a group or their space
//	sweep.go      filters and groups follow the changes, in slices
//	work.go       what the filters of one caller may take
package catalogue
