// How much of a ring one turn of the loop reads, and whether it looks again.
import { clock } from '../../core/schedule/clock.ts'

/** Frames that one turn of the loop reads, at most, so that timers and sockets get their turn under load. */
const FRAMES_PER_TURN = 1024
/**
 * A turn ends after this time too, milliseconds: a thousand requests of a millisecond each would be one turn of a second, in which the
 * thread has no heartbeat, and seems to hang.
 */
const TURN_MS = 10
/**
 * The clock is read after one frame, then after two, four and so on, and after this many at most. So a turn of frames that take equally
 * long takes twice its time and one frame at most.
 */
const FRAMES_PER_CLOCK = 32
/** After this many looks in vain, one after another, the inbox goes to sleep without one. */
const VAIN_LOOKS_MAX = 4
/** It tries again to look after this many sleeps. */
const SLEEPS_WITHOUT_LOOK = 32

/** The pace at which an inbox reads. */
export class Pacing {
  readonly #read: (maxFrames: number) => number
  #vainLooks = 0
  #sleeps = 0

  /** @param read reads up to so many frames @returns how many there were */
  constructor(read: (maxFrames: number) => number) {
    this.#read = read
  }

  /** Reads what one turn may read. @returns how many frames that were */
  readTurn(): number {
    const untilMs = clock.now() + TURN_MS
    let frames = 0
    for (let wanted = 1; ; wanted = Math.min(2 * wanted, FRAMES_PER_CLOCK)) {
      const read = this.#read(wanted)
      frames += read
      if (read < wanted || frames >= FRAMES_PER_TURN || clock.now() >= untilMs) return frames
    }
  }

  /** A look without a ring has found so many frames. */
  looked(frames: number): void {
    this.#vainLooks = frames > 0 ? 0 : this.#vainLooks + 1
  }

  /** Returns false where the other side waits for an answer before it sends more: there each look costs a turn of the loop for nothing. */
  isLookWorthwhile(): boolean {
    if (this.#vainLooks < VAIN_LOOKS_MAX) return true
    if (++this.#sleeps < SLEEPS_WITHOUT_LOOK) return false
    this.#sleeps = 0
    return true
  }
}
