# Deletes the parts of Markdown that are about version 1. Readers do not see the marks of these parts:
#
#   a line with <!-- v1-line -->, such as a row of a table or an item of a list
#   lines between <!-- v1 --> and <!-- /v1 -->, each on a separate line
#   a text without < between the two marks, within a line and not at its beginning
/<!-- v1-line -->/   { next }
/^<!-- v1 -->$/      { out = 1; next }
/^<!-- \/v1 -->$/    { out = 0; next }
!out                 { gsub(/<!-- v1 -->[^<]*<!-- \/v1 -->/, ""); print }
