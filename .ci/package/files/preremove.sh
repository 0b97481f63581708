#!/bin/sh
set -e

# dpkg says "remove", rpm says how many versions stay.
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /run/systemd/system ]; then
		systemctl disable --now vitrine.service
	fi
fi
