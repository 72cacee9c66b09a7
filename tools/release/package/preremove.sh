#!/bin/sh
# Stops the services where the package goes, and not where an upgrade replaces it. dpkg says
# so by "remove", rpm by how many versions stay.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now partnerapi.service partnerapi-work.service
	fi
	;;
esac
