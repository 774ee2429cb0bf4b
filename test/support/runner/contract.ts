/**
 * The contract of the listener, which uWebSockets.js and node:http keep alike: words for `npm test`. What they do otherwise is declared in
 * `test/support/listener.ts`.
 */
export const CONTRACT = [
  'http/',
  'hostile/',
  'sockets/',
  'files/',
  'access/',
  'endpoint/',
  'system/',
  'lanes/streams',
  'claims/two-processes',
  'apidocs/generated',
  'claims/smuggled-',
  'claims/bad-input',
  'claims/mutated-requests',
  'claims/foreign-pages',
  'claims/large-uploads',
  'claims/slow-client',
]

/** What is written for each of the two libraries: enough of the contract for the one that the gate does not run as a whole. */
export const SHORT_CONTRACT = [
  'claims/smuggled-',
  'claims/bad-input',
  'http/raw-body',
  'http/streamed-answers',
  'http/streamed-uploads',
  'claims/large-uploads',
  'http/compression',
  'http/conditional',
  'http/cookies',
  'sockets/protocol',
]
