// Package transfer brings the objects of a platform into the service and out of it, one
// line of JSON each (decisions 10), and takes in what happens on it: signals, one line of
// JSON each too (decisions 7.9). A line of an object has the kind of the object, its id, and fields:
//
//	{"object":"user","id":"0198c1f0-…","client":"cli_…","email":"ana@example.com"}
//
// The records that lines hold are in package domain; this package reads, checks and
// writes them, and applies them to the database in an order in which references
// resolve.
package transfer
