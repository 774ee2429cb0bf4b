// Time that a test has moved: the testing kit opens it, and nothing else does. Without it the time is the system's.

/** Milliseconds by which time is moved, shared by all threads of a process; null outside of a test. */
let moved: Float64Array | null = null
/** The global `Date` before a test has moved it, and what stands there since. */
let shown: { before: DateConstructor; now: () => number; instead: DateConstructor } | null = null

/** Milliseconds by which a test has moved the time; 0 outside of a test. */
export function movedMs(): number {
  return moved === null ? 0 : moved[0]!
}

/** Milliseconds since the epoch by the system's clock, whatever a test has moved. */
export function unmovedMs(): number {
  return shown === null ? Date.now() : shown.now.call(shown.before)
}

/** For the other threads of the process; null outside of a test. */
export function movedMemory(): SharedArrayBuffer | null {
  return moved === null ? null : (moved.buffer as SharedArrayBuffer)
}

/** Lets a test move the time of this thread. @param memory of the thread that moves it, in the other threads of its process */
export function openTime(memory = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)): void {
  moved = new Float64Array(memory)
}

/** Moves the time of all threads of the process. @param ms in all, since `openTime` */
export function moveTime(ms: number): void {
  moved![0] = ms
}

/** The time is the system's again. */
export function closeTime(): void {
  if (shown !== null) {
    const { before, now, instead } = shown
    before.now = now
    before.prototype.constructor = before
    if (globalThis.Date === instead) globalThis.Date = before
    shown = null
  }
  moved = null
}

/** From now on the `Date` of this thread tells the moved time, in code of plugins and packages, too. */
export function showTime(): void {
  if (shown !== null) return
  const before = Date
  const { now } = before
  const movedNow = (): number => now.call(before) + movedMs()
  // A proxy, so that each date that Node or V8 makes is an instance of it, too.
  const instead: DateConstructor = new Proxy(before, {
    construct: (_, given, newTarget): object =>
      Reflect.construct(before, given.length === 0 ? [movedNow()] : given, newTarget === instead ? before : newTarget),
    apply: () => new before(movedNow()).toString(),
  })
  before.now = movedNow
  before.prototype.constructor = instead
  globalThis.Date = instead
  shown = { before, now, instead }
}
