#!/bin/sh
set -e

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers vitrine.conf
elif ! getent passwd vitrine >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/vitrine --shell /usr/sbin/nologin vitrine
fi
# Not in /var/lib/vitrine, which a restore moves aside. An upgrade leaves the directory as it is.
[ -d /etc/vitrine/keys ] || install -d -m 0700 -o vitrine -g vitrine /etc/vitrine/keys
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart vitrine.service # an upgrade; a first start is yours: systemctl enable --now vitrine
fi
