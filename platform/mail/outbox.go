package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"partnerapi/platform/atomicfile"
)

// Outbox writes each message to its own file, ID.eml, for installations without a mail server. A message that
// is sent again replaces its file.
type Outbox struct{ dir string }

const (
	// temporaryPrefix is the prefix of the names of files that are being written.
	temporaryPrefix = ".writing-"
	// abandonedAfter is the age from which such a file is left over by a process that died: a file is written in less
	// than tryWithin.
	abandonedAfter = time.Hour
)

// NewOutbox creates the folder if it does not exist, and removes unfinished files of processes that died. Other
// processes may use the folder at the same time.
func NewOutbox(dir string) (*Outbox, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the outbox: %w", err)
	}
	if err := removeUnfinished(dir); err != nil {
		return nil, fmt.Errorf("tidy the outbox: %w", err)
	}
	return &Outbox{dir: dir}, nil
}

// removeUnfinished removes unfinished files older than abandonedAfter. It reads the folder in parts, because the folder
// contains every email ever sent.
func removeUnfinished(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	for {
		files, err := folder.ReadDir(1000)
		for _, file := range files {
			if !strings.HasPrefix(file.Name(), temporaryPrefix) {
				continue
			}
			// Another process may have renamed or removed the file by now: ErrNotExist.
			info, err := file.Info()
			if err == nil && time.Since(info.ModTime()) > abandonedAfter {
				err = os.Remove(filepath.Join(dir, file.Name()))
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Send writes the message's file atomically and syncs it to disk. An error of writing it is a *MaybeSentError if the
// file exists, from this attempt or an earlier one: the message may have been sent.
func (o *Outbox) Send(ctx context.Context, m Message) error {
	if ctx.Err() != nil {
		return ErrNotStarted
	}
	w, err := m.toWire()
	if err != nil {
		return fmt.Errorf("write to the outbox: %w", err)
	}
	path := filepath.Join(o.dir, w.id+".eml")
	if err = atomicfile.Write(path, temporaryPrefix+"*", bytes.NewReader(w.data), os.Rename); err == nil {
		return nil
	}
	err = fmt.Errorf("write to the outbox: %w", err)
	if _, statErr := os.Lstat(path); statErr == nil {
		return &MaybeSentError{err}
	}
	return err
}

// Close does nothing, because no file stays open.
func (o *Outbox) Close() error { return nil }
