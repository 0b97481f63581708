// Package feature turns the values of features into rows of numbers.
//
// [New] makes a [Schema] from a list of [api.Feature]. The schema says where a request keeps each
// value ([Schema.Item], [Schema.User]), turns the values of a request's items into an N×d matrix
// ([Schema.Rows]), and recovers the values from a row ([Schema.Named]).
package feature
