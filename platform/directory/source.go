// Package directory keeps a client's users as the client's directory has them:
// connectors read Microsoft Entra ID and Google Workspace, and runs write what
// they read.
package directory

import (
	"context"
	"errors"
	"iter"

	"partnerapi/domain"
)

// Source reads a client's directory.
type Source interface {
	// Read reads the accounts from a position on: all of them from the empty one.
	// Pages follow each other until one is the last. It waits out throttling, and
	// stops with the first error: ErrStartOver where the position is no longer
	// known.
	Read(ctx context.Context, position string) iter.Seq2[Page, error]
}

// Page is some accounts of a directory.
type Page struct {
	Accounts []domain.DirectoryAccount
	// Next is the position after the page: the next page's, or on the last page
	// that of the next run.
	Next string
	Last bool
	// Whole says that the pages since the empty position name every account: who is
	// in none of them has been removed.
	Whole bool
}

// ErrStartOver says that a directory has forgotten a position: everything is to be
// read again.
var ErrStartOver = errors.New("the directory has forgotten what it told before")
