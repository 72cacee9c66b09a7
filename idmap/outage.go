package idmap

import "partnerapi/domain"

// told is an error of the driver as callers are to see it: Unavailable where
// the database cannot be reached, and all others as they are.
func told(err error) error {
	if outage := domain.ErrUnavailable("ask the id registry", err); outage != nil {
		return outage
	}
	return err
}
