//go:build !slow

package natslog_test

const crashes, damages = 5, 12
