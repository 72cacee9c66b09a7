package runner

import (
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"partnerapi/domain"
	"partnerapi/job"
)

// TestPauses: they grow, and the tries that a mail has last for its life.
func TestPauses(t *testing.T) {
	var all time.Duration
	tries := job.SendMail{}.InsertOpts().MaxAttempts
	for n := 1; n < tries; n++ {
		pause := pauseAfter(n)
		if usual := pauses[min(n, len(pauses))-1]; pause < usual*9/10 || pause > usual*11/10 {
			t.Errorf("after %d tries %s, not about %s", n, pause, usual)
		}
		all += pauses[min(n, len(pauses))-1]
	}
	if all < domain.MailLife || all > domain.MailLife+3*time.Hour {
		t.Errorf("the tries last %s", all)
	}
}

func TestRescuedAtOnce(t *testing.T) {
	long, now := time.Now().Add(-rescueAfter), time.Now()
	if at := (backoff{}).NextRetry(&rivertype.JobRow{Attempt: 20, AttemptedAt: &long}); at.After(time.Now()) {
		t.Errorf("a job of a process that died waits until %s", at)
	}
	if at := (backoff{}).NextRetry(&rivertype.JobRow{Attempt: 20, AttemptedAt: &now}); at.Before(now.Add(50 * time.Minute)) {
		t.Errorf("a job that failed often is tried at %s", at)
	}
}
