import makeKnex from 'knex'

export default (get: (name: string) => string) => {
  const knex = makeKnex({ client: 'pg', connection: get('TRIAL_PG'), pool: { min: 0, max: 4 } })
  return async () => (await knex.select(knex.raw('1 + 1 AS sum')))[0]
}
