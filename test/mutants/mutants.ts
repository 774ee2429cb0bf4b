/** One change that would be a fault, and the tests of its area. */
export interface Mutant {
  what: string
  file: string
  /** Stands in the file once. */
  from: string
  to: string
  /** Files of `test/`. */
  tests: readonly string[]
  /** Why no test can tell it from the original; missing where one has to. */
  equivalent?: string
}

/** The code where a fault loses or mixes up what people have entrusted to it. */
export const MUTANTS: readonly Mutant[] = [
  {
    what: 'the body of a request is not copied out of the ring',
    file: 'src/transport/frames/request-frame.ts',
    from: 'Buffer.from(bytes.subarray(bodyAt, bodyAt + bodyBytes))',
    to: 'bytes.subarray(bodyAt, bodyAt + bodyBytes)',
    tests: ['shm/frames'],
  },
  {
    what: 'an empty ordering key becomes none',
    file: 'src/transport/frames/event-frame.ts',
    from: 'key: keyLength < 0 ? null',
    to: 'key: keyLength <= 0 ? null',
    tests: ['shm/frames'],
  },
  {
    what: 'takeBackAll ignores who won',
    file: 'src/transport/memory/spsc-ring.ts',
    from: 'if (won) visit(',
    to: 'if (won || true) visit(',
    tests: ['shm/frames'],
  },
  {
    what: 'takeBack takes what the other side has begun',
    file: 'src/transport/memory/spsc-ring.ts',
    from: 'if (!won) return null',
    to: '',
    tests: ['shm/ring-model', 'shm/threads'],
  },
  {
    what: 'the consumer begins what was taken back',
    file: 'src/transport/memory/spsc-ring.ts',
    from: 'const FRAME_TAKEN_BACK = 2',
    to: 'const FRAME_TAKEN_BACK = 0',
    tests: ['shm/ring-model', 'shm/threads'],
  },
  {
    what: 'an answer reaches the next request in its slot',
    file: 'src/primary/dispatch/request-slots.ts',
    from: 'this.#generations[slot] === id >>> 16 ?',
    to: 'true ?',
    tests: ['lanes/request-slots'],
  },
  {
    what: 'revoked tokens beyond 1,000 forget the valid ones',
    file: 'src/tools/auth/revoked-tokens.ts',
    from: 'if (untilSec <= nowSec)',
    to: 'if (untilSec > nowSec)',
    tests: ['auth/revoked-tokens'],
  },
  {
    what: 'revoked tokens are all forgotten beyond 1,000',
    file: 'src/tools/auth/revoked-tokens.ts',
    from: 'if (untilSec <= nowSec) this.#until.delete(id)',
    to: 'this.#until.delete(id)',
    tests: ['auth/revoked-tokens'],
  },
  {
    what: 'retryDelayMs is doubled',
    file: 'src/primary/events/retry.ts',
    from: '2 ** (attempt - 1)',
    to: '2 ** attempt',
    tests: ['events/retry'],
  },
  {
    what: 'retryDelayMs has no cap',
    file: 'src/primary/events/retry.ts',
    from: 'Math.min(RETRY_MAX_DELAY_MS, backoffMs * 2 ** (attempt - 1))',
    to: 'backoffMs * 2 ** (attempt - 1)',
    tests: ['events/retry'],
  },
  {
    what: 'a retry that was taken away begins here, too',
    file: 'src/primary/events/deliveries.ts',
    from: ' return this.#leave(delivery)',
    to: '',
    tests: ['events/hub-stored'],
  },
  {
    what: 'anybody renews the write lock',
    file: 'src/transport/memory/write-lock.ts',
    from: 'if (Atomics.load(this.#words, OWNER) === this.#self) Atomics.store(this.#words, LEASE, nowMs())',
    to: 'Atomics.store(this.#words, LEASE, nowMs())',
    tests: ['db/write-lock'],
  },
  {
    what: 'who has lost the write lock releases it for its new owner',
    file: 'src/transport/memory/write-lock.ts',
    from: 'if (Atomics.compareExchange(words, OWNER, owner, 0) === owner) Atomics.notify(words, OWNER)',
    to: 'Atomics.store(words, OWNER, 0); Atomics.notify(words, OWNER)',
    tests: ['db/write-lock'],
  },
  {
    what: 'a silent owner keeps the write lock',
    file: 'src/transport/memory/write-lock.ts',
    from: 'owner === 0 || this.#isStale()',
    to: 'owner === 0',
    tests: ['db/write-lock'],
  },
  {
    what: 'WANTED is left set by whoever takes the lock',
    file: 'src/transport/memory/write-lock.ts',
    from: '    Atomics.store(this.#words, WANTED, 0)\n    return true',
    to: '    return true',
    tests: ['db/write-lock'],
    equivalent: 'The owner yields once more for 2 ms at its next turn: slower, and never wrong.',
  },
]
