import bcrypt from 'bcryptjs'

export default () => async () => bcrypt.compare('a password', await bcrypt.hash('a password', 6))
