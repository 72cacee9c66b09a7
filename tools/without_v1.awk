# Leaves out of Markdown what is about version 1, which is marked so that readers do not see it:
#
#   a line with <!-- v1-line -->, such as a row of a table or an item of a list
#   lines between <!-- v1 --> and <!-- /v1 -->, each on a line of its own
#   a text without < between the two, within a line and not at its beginning
/<!-- v1-line -->/   { next }
/^<!-- v1 -->$/      { out = 1; next }
/^<!-- \/v1 -->$/    { out = 0; next }
!out                 { gsub(/<!-- v1 -->[^<]*<!-- \/v1 -->/, ""); print }
