/**
 * Offsets of everything in shared memory. All words are 32-bit and accessed with `Atomics` unless a line says otherwise.
 *
 * Ring (one producer thread, one consumer thread):
 *
 *   byte 0     64    128   192 … 256                                    256 + capacity
 *   ┌──────┬──────┬──────┬──────┬──────────────────────────────────────────┐
 *   │ HEAD │ TAIL │ RUNG │  –   │ frames                                   │
 *   └──────┴──────┴──────┴──────┴──────────────────────────────────────────┘
 *
 * HEAD, TAIL and RUNG stand in cache lines of their own: each is written by one side and read by the other,
 * and two of them in one line would bounce it between the cores.
 * HEAD and TAIL count bytes for ever, modulo 2^32; a position's offset is `position & (capacity - 1)`.
 *
 * Frame, aligned to 8 bytes, never split at the end of the ring (a WRAP length says: go on at offset 0):
 *
 *   ┌────────┬───────┬──────┬──────┬──────────────┬───────┐
 *   │ LENGTH │ STATE │  ID  │ KIND │ body         │ pad   │
 *   └────────┴───────┴──────┴──────┴──────────────┴───────┘
 *   16 bytes of header               LENGTH bytes   to 8
 */
export const RING_HEAD_WORD = 0
export const RING_TAIL_WORD = 16
export const RING_RUNG_WORD = 32
export const RING_DATA_BYTE = 256

export const FRAME_HEADER_BYTES = 16
export const FRAME_LENGTH_WORD = 0
export const FRAME_STATE_WORD = 1
export const FRAME_ID_WORD = 2
export const FRAME_KIND_WORD = 3
/** LENGTH of the marker that sends the consumer back to offset 0. */
export const FRAME_WRAP = -1

/** STATE: written by the producer, then claimed by whichever side swaps it first. */
export const FRAME_READY = 0
export const FRAME_TAKEN = 1
export const FRAME_TAKEN_BACK = 2

/**
 * Pulse of one lane (written by the lane, read by the primary):
 *
 *   word 0  BEATS        counts up every LANE_BEAT_MS while the lane's loop turns
 *   word 1  LOOP_DELAY   longest delay of that timer in the last second, microseconds
 *   word 2  HEAP_KIB     used JavaScript heap
 */
export const PULSE_BEATS_WORD = 0
export const PULSE_LOOP_DELAY_US_WORD = 1
export const PULSE_HEAP_KIB_WORD = 2
export const PULSE_BYTES = 64

/** Answer cell: word 0 STATE, word 1 LENGTH, then the text. */
export const ANSWER_STATE_WORD = 0
export const ANSWER_LENGTH_WORD = 1
export const ANSWER_TEXT_BYTE = 8
export const ANSWER_BYTES = 128

/**
 * Metrics ring (any thread writes, any thread reads): one word CURSOR in the first 64 bytes, then slots of 32 bytes:
 *
 *   ┌────────┬────────────────┬──────────────────┬─────────────────┬─────────┐
 *   │ COMMIT │ CALL | FAILED  │ DURATION (float64)│ ENDED (float64) │ THREAD  │
 *   └────────┴────────────────┴──────────────────┴─────────────────┴─────────┘
 *   word 0     word 1           bytes 8–15         bytes 16–23       word 6
 *
 * CURSOR counts records for ever, modulo 2^32. COMMIT is `record number + 1` once the slot is whole.
 */
export const METRICS_CURSOR_WORD = 0
export const METRICS_DATA_BYTE = 64
export const METRICS_SLOT_BYTES = 32

/**
 * Name table (any thread adds, any thread reads): word 0 LOCK, word 1 COUNT, then entries of 128 bytes: word 0 the length, then UTF-8.
 * Entries are written once, before COUNT is raised over them, and never change.
 */
export const NAMES_LOCK_WORD = 0
export const NAMES_COUNT_WORD = 1
export const NAMES_DATA_BYTE = 64
export const NAMES_ENTRY_BYTES = 128
