import { guard, type HttpContext, HttpError } from 'heddle'
import type { User } from './domain.ts'

/** `context` of a route for customers or admins. */
export type ForUser = HttpContext & { user: User }

/** For everyone who is logged in. */
export const customers = guard({ 401: 'Nobody is logged in' }, (_data, { user }: ForUser) => {
  if (user === null) throw new HttpError(401, 'Log in first')
})

/** For those who run the shop. */
export const admins = guard(
  { 403: { description: 'Admins only', code: 'ADMINS_ONLY' } },
  (_data, { user }: ForUser) => {
    if (!user?.isAdmin) throw new HttpError(403, 'Admins only', { code: 'ADMINS_ONLY' })
  },
)
