// Package transfer imports and exports the objects of a platform, one line of JSON each
// (decisions 10), and ingests what happens on the platform: signals, also one line of JSON
// each (decisions 7.9). A line of an object has the kind of the object, its id, and fields:
//
//	{"object":"user","id":"0198c1f0-…","client":"cli_…","email":"ana@example.com"}
//
// The records that lines hold are in package domain; this package reads, checks and
// writes them, and applies them to the database in an order in which references
// resolve.
package transfer
