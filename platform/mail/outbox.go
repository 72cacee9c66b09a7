package mail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Outbox puts each message into a file of its own, ID.eml, for installations
// without a mail server. A message that is sent again replaces its file.
type Outbox struct{ dir string }

// NewOutbox makes the folder where it is missing.
func NewOutbox(dir string) (*Outbox, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the outbox: %w", err)
	}
	return &Outbox{dir: dir}, nil
}

// Send writes the message. Its file appears whole or not at all, and is on the
// disk when Send returns.
func (o *Outbox) Send(_ context.Context, m Message) (err error) {
	message, err := m.format()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(o.dir, ".writing-*")
	if err != nil {
		return fmt.Errorf("write to the outbox: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write to the outbox: %w", errors.Join(err, os.Remove(file.Name())))
		}
	}()
	_, err = message.WriteTo(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(o.dir, m.ID+".eml"))
}

// Close does nothing.
func (o *Outbox) Close() error { return nil }
