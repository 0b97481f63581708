//go:build slow

package natslog_test

const crashes, damages = 100, 120
