package mail

import (
	"context"
	"fmt"
)

// Check connects as for a message, with encryption and authentication as they are
// configured, and says goodbye: nothing is sent. It ends with ctx, after 20 seconds
// at the latest. How describes the connection in a few words.
func (s *SMTP) Check(ctx context.Context) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	c, err := s.server.connect(ctx)
	if err != nil {
		return "", fmt.Errorf("connect to the mail server: %w", err)
	}
	defer c.close()

	how = "not encrypted"
	if _, encrypted := c.smtp.TLSConnectionState(); encrypted || s.server.implicitTLS {
		how = "encrypted"
	}
	if s.server.user != "" {
		how += ", authenticated"
	}
	return how, nil
}
