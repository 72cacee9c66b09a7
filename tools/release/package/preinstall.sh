#!/bin/sh
# Makes the user of the service, whom files of the package belong to.
set -e
getent group partnerapi >/dev/null || groupadd --system partnerapi
getent passwd partnerapi >/dev/null || useradd --system --gid partnerapi \
	--home-dir /var/lib/partnerapi --no-create-home --shell /usr/sbin/nologin partnerapi
