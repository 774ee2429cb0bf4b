import type { it } from 'node:test'

/** `HTTP_LISTENER=node npm test -- http hostile sockets streams files` runs the tests against the listener on node:http. */
export const isNodeListener = process.env.HTTP_LISTENER === 'node'

/**
 * Where the listener on node:http does otherwise than uWebSockets.js: a test by its name, or one of its cases, with the reason. What it
 * does instead is in `test/http/node-listener.test.ts`, and for readers in `src/primary/http/README.md`.
 */
export const DEVIATIONS: Record<string, string> = {
  // Requests that uWebSockets.js refuses, and HTTP/1.1 allows.
  'the absolute form': 'it is served, as RFC 9112, section 3.2.2 wants it',
  'the absolute form of another host': 'its host counts, which is 421 unless it is allowed',
  'two blanks in the request line': 'llhttp reads them as one',
  'a bare line feed in the request line': 'llhttp ends the line with it (RFC 9112, section 2.2)',
  'HTTP/0.9 with a bare line feed': 'llhttp waits for the headers, until the time for a head is up',
  // What uWebSockets.js reads so loosely that the connection has to be closed.
  'are the last of their connection': 'the end of a chunked body is certain',
  'is closed after the answer to a POST, PUT or PATCH that says nothing of a body': 'such a request has no body',
  'is cut off when a chunk extension reads like hexadecimal digits': 'an extension is read as one, and ignored',
  'keeps bytes beyond ASCII inside a header, and the log says once what is lost': 'none is lost',
  'that was closed so is named in the log, once': 'the first request is answered, so that nothing is to be told',
  // Requests that llhttp refuses.
  'answers 405 with Allow for a method that the path does not have': 'a method that llhttp does not know is 400',
  'answers 404 for a path that nobody has, whatever the method and the body':
    'a method that llhttp does not know is 400',
  'answers 400 to bad percent-encoding and to NUL in the path, 400 to bad percent-encoding in the query':
    'llhttp refuses bytes beyond ASCII in the target with 400, in other words',
  'reads a path and a header in UTF-8, and survives a header that is none': 'bytes beyond ASCII in the target are 400',
  'are refused: 14 with beyond ASCII': 'a control character in a header is 400 before it is 401',
  'come back from a header, but for what a header cannot hold': 'llhttp refuses DEL in a header',
  'two transfer-encodings': 'llhttp does not tell them from an unknown one',
  // The package ws
  'a close that must not be sent is answered by one without a code and the end; the plugin is told 1002':
    'it is answered with 1002, or 1007 for a reason that is no UTF-8 (RFC 6455, section 7.4.1)',
  'a socket stays open whatever takes the memory that its handshake has freed': 'there is no such memory',
}

/** The tests and cases that hold for both listeners, and those of uWebSockets.js when it is the one that serves. */
export const holds = (name: string): boolean => !(isNodeListener && name in DEVIATIONS)

/** Adds a test that does not hold for every listener. */
export function itHolds(add: typeof it, name: string, run: () => Promise<void>): void {
  if (holds(name)) add(name, run)
}
