import type { EventContracts, PayloadsOf } from 'heddle'
import { z } from 'zod'

const contracts = {
  'mail.sent': z.object({ order_id: z.string(), attempts: z.number() }),
} satisfies EventContracts

export default contracts

declare module 'heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}
