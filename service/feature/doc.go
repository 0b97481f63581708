// Package feature turns the values of features into rows of numbers.
//
// A [Schema] is made from a list of [Schema]. It says where a request keeps each value
// ([Schema.Item], [Schema.User]), turns the values of a request's items into an N×d matrix
// ([Schema.Rows]), and names the values of a row again ([Schema.Named]).
package feature
