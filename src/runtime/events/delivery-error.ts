import { Unrecoverable } from '../../core/errors/db-error.ts'
import { cutText, isInstance, messageWithCauses } from '../../core/errors/description.ts'
import { toWire, type WireError } from '../../core/errors/wire.ts'
import { withoutSecretTexts } from '../../core/schemas/secret-fields.ts'

/** Characters of the message of a subscriber's error, and of its stack, that leave its thread. */
export const DELIVERY_ERROR_MAX_LENGTH = 4096

/** What a subscriber threw, for the hub, the failure listeners and the dead letter. */
export function deliveryError(thrown: unknown): WireError {
  const wire = toWire(thrown)
  wire.message = shown(messageWithCauses(thrown))
  if (wire.stack !== undefined) wire.stack = shown(wire.stack)
  if (isInstance(thrown, Unrecoverable)) wire.unrecoverable = true
  return wire
}

const shown = (text: string): string => cutText(withoutSecretTexts(text), DELIVERY_ERROR_MAX_LENGTH)
