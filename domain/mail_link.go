package domain

import (
	"net/url"
	"strings"
)

// MailLink is what the button of an email leads to on the learning platform: a course, a policy, an invite or, for the zero
// MailLink, the user's training.
type MailLink struct {
	object string // the parameter that names it to a learning platform
	folder string
	id     string
}

// LinkToCourse returns the link to a course.
func LinkToCourse(id CourseID) MailLink { return MailLink{"course", courseFolder, id.String()} }

// LinkToPolicy returns the link to a policy.
func LinkToPolicy(id PolicyID) MailLink { return MailLink{"policy", policyFolder, id.String()} }

// LinkToInvite returns the link to an invite.
func LinkToInvite(id InviteID) MailLink { return MailLink{"invite", inviteFolder, id.String()} }

// The folders of this service's pages for objects.
const (
	courseFolder = "/training/"
	policyFolder = "/policies/"
	inviteFolder = "/invites/"
)

// LinkPaths are the paths of this service's pages that links lead to if there is no learning platform. A colon begins the
// name of a part.
var LinkPaths = []string{"/training", courseFolder + ":id", policyFolder + ":id", inviteFolder + ":id"}

// ParseMailLink returns the link to a path of LinkPaths. If the ID is invalid, it is the link to the training.
func ParseMailLink(path string) MailLink {
	end := strings.LastIndexByte(path, '/') + 1
	switch id := path[end:]; path[:end] {
	case courseFolder:
		return linkTo(id, LinkToCourse)
	case policyFolder:
		return linkTo(id, LinkToPolicy)
	case inviteFolder:
		return linkTo(id, LinkToInvite)
	}
	return MailLink{}
}

// linkTo returns the link to an object by its ID, or the link to the training if the ID is invalid.
func linkTo[K Kind](text string, to func(ID[K]) MailLink) MailLink {
	id, err := ParseID[K](text)
	if err != nil {
		return MailLink{}
	}
	return to(id)
}

// Path returns the path of the link on this service.
func (l MailLink) Path() string {
	if l.object == "" {
		return LinkPaths[0]
	}
	return l.folder + l.id
}

// On returns the URL of the link on a learning platform. A parameter of the query names the object.
func (l MailLink) On(platform *url.URL) string {
	if l.object == "" {
		return platform.String()
	}
	to := *platform
	query := to.Query()
	query.Set(l.object, l.id)
	to.RawQuery = query.Encode()
	return to.String()
}
