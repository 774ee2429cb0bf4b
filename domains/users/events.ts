import { z } from 'zod'
import type { EventContracts, PayloadsOf } from '#heddle'

const contracts = {
  'user.created': z.object({ id: z.string(), name: z.string(), email: z.string() }),
  'user.deleted': z.object({ id: z.string() }),
  'welcome.sent': z.object({ user_id: z.string() }),
  'users.daily_summary': z.object({ since: z.string(), until: z.string(), created: z.number() }),
} satisfies EventContracts

export default contracts

export type UserCreated = z.infer<(typeof contracts)['user.created']>

declare module '#heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}
