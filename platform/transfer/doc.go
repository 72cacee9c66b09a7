// Package transfer imports and exports the objects of a platform, one line of JSON each
// (decisions 10), and ingests signals, the events on the platform, also one line of JSON
// each (decisions 7.9). A line of an object has the kind of the object, its id, and fields:
//
//	{"object":"user","id":"0198c1f0-…","client":"cli_…","email":"ana@example.com"}
//
// The types of the records in lines are in package domain. This package reads, checks and writes records, and applies
// them to the database in an order in which references resolve.
package transfer
