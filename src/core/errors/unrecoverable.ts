/**
 * Thrown by a subscriber, it says that another attempt would fail, too: the delivery becomes a dead letter at once, whatever its `retries`.
 * What counts is the value that was thrown, or that the handler's promise was rejected with: an instance of this class or of a class that
 * extends it. One that is the `cause` of another error, or among those of an AggregateError, is not seen.
 */
export class Unrecoverable extends Error {
  override name = 'Unrecoverable'
}
