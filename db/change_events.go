package db

import (
	"context"
	"encoding/json"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ClientEvent records that something happened to a client.
func (c *Change) ClientEvent(kind domain.EventType, client domain.ClientID) {
	c.event(kind, domain.UserKey{Client: client}, "")
}

// UserEvent records that something happened to a user.
func (c *Change) UserEvent(kind domain.EventType, user domain.UserKey) { c.event(kind, user, "") }

// ObjectEvent records that something happened to an object of a user, whose UUID
// it is given.
func (c *Change) ObjectEvent(kind domain.EventType, user domain.UserKey, object string) {
	c.event(kind, user, object)
}

// ClientObjectEvent records that something happened to an object of a client,
// whose UUID it is given.
func (c *Change) ClientObjectEvent(kind domain.EventType, client domain.ClientID, object string) {
	c.event(kind, domain.UserKey{Client: client}, object)
}

func (c *Change) event(kind domain.EventType, user domain.UserKey, object string) {
	row := eventRow{
		ClientID: user.Client.UUID(), ID: NewID[domain.EventKind]().UUID(), Type: kind, CreatedAt: c.At,
	}
	if !user.User.IsZero() {
		id := user.User.UUID()
		row.UserID = &id
	}
	if object != "" {
		row.ObjectID = &object
	}
	c.events = append(c.events, row)
}

// flushEvents writes the events of the change.
func (c *Change) flushEvents(ctx context.Context) error {
	if len(c.events) == 0 || c.silent {
		return nil
	}
	text, err := json.Marshal(c.events)
	if err != nil {
		return err
	}
	_, err = pg.Exec(ctx, c, "record events", pg.Prepared(pg.SQL(`
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT client_id, id, type, user_id, object_id, created_at
		FROM json_populate_recordset(NULL::events, ?::json)`, string(text))))
	if wake := c.onEvents.Load(); wake != nil && err == nil {
		c.AfterCommit(ctx, *wake)
	}
	return err
}

// OnEvents has wake called after the commit of each change of this process that wrote
// events: it must return at once. Other processes are not told; they look (EventsWait).
func (d *DB) OnEvents(wake func()) { d.onEvents.Store(&wake) }
