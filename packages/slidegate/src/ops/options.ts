// The options of an op for the script: see the head of driver.lua.

export const LOOK = 1
export const FORCED = 2
export const WAITING = 4
export const MAY_REPEAT = 8
export const IDS = 16
export const LEASE = 32
export const RESERVATION_NAME = 64
export const EXPLAIN = 128
export const CHARGES = 256
export const HOLD = 512
export const RARE = 1024
export const CLOCK = 2048
