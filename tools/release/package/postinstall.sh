#!/bin/sh
# Services that run go on with the new program. A first installation starts none: it has to
# be told its database before. dpkg's package has a template of the settings, which are made
# once and then the operator's.
set -e
template=/usr/share/partnerapi/partnerapi.env settings=/etc/partnerapi/partnerapi.env
if [ -e "$template" ] && [ ! -e "$settings" ]; then
	install -m 640 -o root -g partnerapi "$template" "$settings"
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart partnerapi.service partnerapi-work.service || true
fi
