import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../../looms/generated/client.ts'

export default (get: (name: string) => string) => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: get('TRIAL_PG'), max: 4 }) })
  // Two lanes may both make it.
  const made = prisma.$executeRaw`CREATE TABLE IF NOT EXISTS "Loom" (id serial PRIMARY KEY, name text NOT NULL)`
  return async () => {
    await made.then(null, () => {})
    await prisma.loom.create({ data: { name: 'warp' } })
    return (await prisma.loom.findFirst({ where: { name: 'warp' } }))?.name
  }
}
