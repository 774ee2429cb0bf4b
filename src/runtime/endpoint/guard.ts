import type { Guard, ThrownAnswers } from '../../contracts/http-request.ts'

/** A guard that says what it throws, for the API documents: `guard({ 403: 'Admins only.' }, (data, context) => …)`. */
export function guard<Added = unknown>(throws: ThrownAnswers, run: Guard<Added>): Guard<Added> {
  return Object.assign(run, { throws })
}
