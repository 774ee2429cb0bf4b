import assert from 'node:assert/strict'
import type { it } from 'node:test'

/**
 * The tests of the listener are one contract for both. They are written as uWebSockets.js has it; `npm test -- --listener node` runs them
 * against the listener on node:http.
 */
export const isNodeListener = process.env.HTTP_LISTENER === 'node'

/**
 * Where node:http does otherwise: a test, or one of its cases, by its name, with the reason. Each is run all the same, and has to fail.
 * What happens instead is in `test/rooms/http/node-listener.test.ts`, and for readers in `src/primary/http/README.md`.
 */
export const DEVIATIONS: Readonly<Record<string, string>> = {
  // Requests that uWebSockets.js refuses, and HTTP/1.1 allows.
  'the absolute form': 'it is served, as RFC 9112, section 3.2.2 wants it',
  'the absolute form of another host': 'its host counts, which is 421 unless it is allowed',
  'two blanks in the request line': 'llhttp reads them as one',
  'HTTP/0.9 with a bare line feed': 'llhttp waits for the headers, until the time for a head is up',
  // What uWebSockets.js reads so loosely that the connection has to be closed.
  'are the last of their connection': 'the end of a chunked body is certain',
  'is closed after the answer to a POST, PUT or PATCH that says nothing of a body': 'such a request has no body',
  'loses bytes beyond ASCII at the ends of a header, and the log says so once': 'none is lost',
  'that was closed so is named in the log, once': 'the first request is answered, so that nothing is to be told',
  // Requests that llhttp refuses.
  'answers 405 with Allow for a method that HTTP does not know': 'llhttp refuses it with 400',
  'answers 404 for a path that nobody has, whatever the method': 'llhttp refuses a method that it does not know',
  'answers 400 to bytes beyond ASCII that are no UTF-8': 'llhttp refuses all of them in a target, in other words',
  'reads a path in UTF-8': 'llhttp refuses bytes beyond ASCII in a target with 400',
  'come back from a header, with the DEL that it may not have': 'llhttp refuses it',
  'two transfer-encodings': 'llhttp does not tell them from an unknown one',
  // The package ws
  'a close that must not be sent is answered by one without a code and the end; the plugin is told 1002':
    'it is answered with 1002, or 1007 for a reason that is no UTF-8 (RFC 6455, section 7.4.1)',
}

const CERTAIN = 'it is valid (RFC 9112, section 7.1), and its end certain: the connection goes on'
const LARGE = 'llhttp takes the size, and waits for as many bytes'

/** What node:http makes of chunked bodies of `test/rooms/hostile/shapes.ts` that it does not refuse at once, with the reason. */
export const NODE_READS: Readonly<Record<'as valid' | 'on and on', Readonly<Record<string, string>>>> = {
  'as valid': {
    'chunks: a size of 40 zeros and 3': CERTAIN,
    'chunks: a size of 4,000 zeros and 3': CERTAIN,
    'chunks: several zeros as the last chunk': CERTAIN,
    'chunks: an extension': CERTAIN,
    'chunks: an extension with a value': CERTAIN,
    'chunks: an extension in quotes': CERTAIN,
    'chunks: an extension of 16 KiB': CERTAIN,
    'chunks: an extension of the last chunk': CERTAIN,
    'chunks: a trailer': CERTAIN,
  },
  'on and on': {
    'chunks: a size of 32 bits and 3': LARGE,
    'chunks: the largest size of 64 bits': LARGE,
    'chunks: the largest signed size of 64 bits': LARGE,
  },
}

/**
 * What an idle connection may add to the resident memory, with garbage of its request that is not yet collected. On node:http 11 KiB live,
 * nearly all of them its own; uWebSockets.js needs 5.
 */
export const IDLE_CONNECTION_MAX_BYTES = (isNodeListener ? 24 : 16) * 1024

/** Adds a test that does not hold for every listener. @param name of its deviation, where it is not the title */
export function itHolds(add: typeof it, title: string, run: () => Promise<void>, name = title): void {
  const reason = isNodeListener ? DEVIATIONS[name] : undefined
  if (reason === undefined) return void add(title, run)
  add(`${title} (not on node:http: ${reason})`, () =>
    assert.rejects(run, Error, 'it holds on node:http, too, and is no deviation'),
  )
}
