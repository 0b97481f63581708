// Package catalogue keeps the items of a placement, so that requests name them by id.
//
//	item.go       what an item may have, and how a patch changes it
//	record.go     an item in bytes, as the log, snapshots and memory have it
//	catalogue.go  the items, their rows and how they change
//	select.go     which of them a request may be offered
//	filter.go     conditions on items
package catalogue
